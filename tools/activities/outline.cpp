/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A block of `activate` becomes a function. The header's macro is a loop that runs once:
 *
 *   for (int mark = weft__activate(handle, count, &variable, sizeof variable…); mark; mark = weft__activated(&mark))
 *           { block }
 *
 * The region from the loop's body up to the call of weft__activated is taken out by LLVM's CodeExtractor. Variables of
 * the block alone move with it. Listed variables are copied before it, and the copies move with it. All other variables
 * are passed by address. The innermost block is outlined first, while the variables that it copies are still variables.
 */
#include "pass.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"
#include "llvm/Transforms/Utils/Local.h"

#include <set>

using namespace llvm;

namespace weft
{
namespace
{
class Outliner
{
      public:
	Outliner(Function &F, CallInst *Begin) : F(F), M(*F.getParent()), C(F.getContext()), Begin(Begin)
	{
	}
	bool run(Body &Result);

      private:
	Function &F;
	Module &M;
	LLVMContext &C;
	CallInst *Begin, *End = nullptr;
	BasicBlock *First = nullptr, *Exit = nullptr;
	SetVector<BasicBlock *> Region;

	bool fail(const Twine &Message)
	{
		error(*Begin, Message);
		return false;
	}
	bool findLoop();
	bool collect();
	bool hasNoArguments();
	void keepExceptions(BasicBlock *Last);
	void noDeadWaysIn();
	void enterByOneBlock();
	void ownDeadEnds();
	bool copyListed();
	void ownWaysOut();
	bool isWayOut(AllocaInst *A);
	bool crosses(LoadInst *L);
	void goOnAfter(CallInst *Call, Function *B);
	void notAgain();
	void moveOwn();
	AllocaInst *inside(Type *T, Align A, const Twine &Name);
	void useInside(AllocaInst *A, AllocaInst *Copy, Instruction *But);
};

/* Finds the blocks by the loop's variable: a store of the call's result, a load, a comparison, a branch. */
bool Outliner::findLoop()
{
	auto *Store = Begin->hasOneUse() ? dyn_cast<StoreInst>(*Begin->user_begin()) : nullptr;
	auto *Mark = Store ? dyn_cast<AllocaInst>(Store->getPointerOperand()) : nullptr;

	if (!Mark)
		return fail("activate is used in a way that is not the macro's");
	for (User *U : Mark->users()) {
		if (auto *Call = dyn_cast<CallInst>(U); Call && calls(*Call, Activated))
			End = Call;
		if (!isa<LoadInst>(U))
			continue;
		for (User *Compare : U->users())
			for (User *Branch : Compare->users())
				if (auto *B = dyn_cast<BranchInst>(Branch); B && B->isConditional()) {
					First = B->getSuccessor(0);
					Exit = B->getSuccessor(1);
				}
	}
	if (!First)
		return fail("activate is used in a way that is not the macro's");
	if (!End)
		return fail("the block of activate never ends: leave it at its end, so that the activity can end");
	return true;
}

/* The blocks that can be reached from a block without entering Without, with or without paths of exceptions. */
static std::set<BasicBlock *> reach(BasicBlock *From, BasicBlock *Without, bool Exceptions)
{
	std::vector<BasicBlock *> Work{From};
	std::set<BasicBlock *> Seen;

	while (!Work.empty()) {
		BasicBlock *B = Work.back();

		Work.pop_back();
		if (B == Without || !Seen.insert(B).second)
			continue;
		for (BasicBlock *S : successors(B))
			if (Exceptions || !S->isLandingPad())
				Work.push_back(S);
	}
	return Seen;
}

/*
 * An exception cannot leave an activity, because it would reach the activating function. C++ then ends the program
 * (std::terminate), because it finds no frame that catches the exception. So an invoke whose cleanups belong only to
 * the enclosing function becomes a call; and no path leads from the block's own cleanups to the function's cleanups.
 */
void Outliner::keepExceptions(BasicBlock *Last)
{
	std::set<BasicBlock *> Others = reach(&F.getEntryBlock(), First, true), Own = reach(First, Last, true);
	std::set<BasicBlock *> Usual = reach(First, Last, false);

	for (BasicBlock *B : Own) {
		if (auto *Invoke = dyn_cast<InvokeInst>(B->getTerminator()); Invoke && !Others.count(B))
			if (Others.count(Invoke->getUnwindDest())) {
				changeToCall(Invoke);
				continue;
			}
		if (Usual.count(B) || Others.count(B))
			continue;
		for (BasicBlock *S : successors(B))
			if (Others.count(S)) {
				auto *Ends = BasicBlock::Create(C, "terminate", &F);
				IRBuilder<> IR(Ends);
				CallInst *Call = IR.CreateCall(
				    M.getOrInsertFunction("_ZSt9terminatev", FunctionType::get(IR.getVoidTy(), false)));
				Call->setDebugLoc(Begin->getDebugLoc());
				IR.CreateUnreachable();
				S->removePredecessor(B);
				B->getTerminator()->replaceSuccessorWith(S, Ends);
			}
	}
}

bool Outliner::collect()
{
	std::vector<BasicBlock *> Work{First};
	BasicBlock *Last = End->getParent();

	if (&Last->front() != End)
		Last = SplitBlock(Last, End);
	if (F.hasPersonalityFn())
		keepExceptions(Last);
	while (!Work.empty()) {
		BasicBlock *B = Work.back();

		Work.pop_back();
		if (B == Last || !Region.insert(B))
			continue;
		if (B == Exit || isa<ReturnInst>(B->getTerminator()))
			return fail("'return', 'break' or 'goto' leaves the block of activate: an activity cannot "
				    "continue there; use 'continue' to end the activity");
		for (BasicBlock *S : successors(B))
			Work.push_back(S);
	}
	return true;
}

/* Is T a va_list, or a part of a va_list? */
static bool isList(Type *T)
{
	while (auto *A = dyn_cast<ArrayType>(T))
		T = A->getElementType();
	auto *S = dyn_cast<StructType>(T);
	return S && !S->isLiteral() && S->getName().starts_with("struct.__va_list_tag");
}

/* A va_list points into the frame of the function, which is parked or gone while the block runs. */
bool Outliner::hasNoArguments()
{
	auto IsOfList = [](Value *V) {
		auto *A = dyn_cast<AllocaInst>(V);
		return A && isList(A->getAllocatedType());
	};

	for (BasicBlock *B : Region)
		for (Instruction &I : *B) {
			auto *Part = dyn_cast<GetElementPtrInst>(&I);

			if ((Part && isList(Part->getSourceElementType())) || any_of(I.operand_values(), IsOfList))
				return fail("a va_list cannot be used in the block of activate, because it leads into "
					    "the enclosing function's frame: read the arguments before, and list the "
					    "variables that have them");
		}
	return true;
}

/* Unreachable code, for example behind a `break`, may lead into the block: that would be a second entry. */
void Outliner::noDeadWaysIn()
{
	std::set<BasicBlock *> Reached = reach(&F.getEntryBlock(), nullptr, true);

	for (BasicBlock &B : F)
		if (!Reached.count(&B) && any_of(successors(&B), [&](BasicBlock *S) { return Region.count(S); }))
			changeToUnreachable(B.getTerminator());
}

void Outliner::enterByOneBlock()
{
	auto *Entry = BasicBlock::Create(C, "activity", &F, First);
	std::vector<BasicBlock *> Before(pred_begin(First), pred_end(First));
	SetVector<BasicBlock *> All;

	BranchInst::Create(First, Entry);
	for (BasicBlock *P : Before)
		if (!Region.count(P))
			P->getTerminator()->replaceSuccessorWith(First, Entry);
	All.insert(Entry);
	All.insert(Region.begin(), Region.end());
	Region = All;
	First = Entry;
}

/* Block and function may share code that ends the program: all failed checks of -fsanitize-trap go to one place. */
void Outliner::ownDeadEnds()
{
	auto InRegion = [&](BasicBlock *B) { return Region.count(B); };
	std::vector<BasicBlock *> Shared;

	for (BasicBlock *B : Region)
		if (succ_empty(B) && !all_of(predecessors(B), InRegion))
			Shared.push_back(B);
	for (BasicBlock *B : Shared) {
		ValueToValueMapTy Map;
		BasicBlock *Own = CloneBasicBlock(B, Map, ".own", &F);
		std::vector<BasicBlock *> Before(pred_begin(B), pred_end(B));

		remapInstructionsInBlocks({Own}, Map);
		for (BasicBlock *P : Before)
			if (InRegion(P))
				P->getTerminator()->replaceSuccessorWith(B, Own);
		Region.remove(B);
		Region.insert(Own);
	}
}

AllocaInst *Outliner::inside(Type *T, Align A, const Twine &Name)
{
	auto *Copy = new AllocaInst(T, 0, Name, F.getEntryBlock().getFirstInsertionPt());

	Copy->setAlignment(A);
	return Copy;
}

void Outliner::useInside(AllocaInst *A, AllocaInst *Copy, Instruction *But)
{
	A->replaceUsesWithIf(Copy, [&](Use &U) {
		auto *I = dyn_cast<Instruction>(U.getUser());
		return I && I != But && Region.count(I->getParent());
	});
}

/* A scalar is passed as a value; a larger variable, or a struct, in a heap block that the activity frees. */
bool Outliner::copyListed()
{
	const DataLayout &DL = M.getDataLayout();
	IRBuilder<> Before(Begin), Inside(First->getTerminator());
	unsigned Count = cast<ConstantInt>(Begin->getArgOperand(1))->getZExtValue();

	for (unsigned I = 0; I < Count; I++) {
		auto *A = dyn_cast<AllocaInst>(Begin->getArgOperand(2 + 2 * I)->stripPointerCasts());
		auto *Size = dyn_cast<ConstantInt>(Begin->getArgOperand(3 + 2 * I));

		/* The size distinguishes a struct from its first member. */
		if (!A || A->isArrayAllocation() || !Size ||
		    Size->getZExtValue() != DL.getTypeAllocSize(A->getAllocatedType()))
			return fail(
			    "activate copies whole local variables of a fixed size: list a variable, not a part "
			    "of one, or copy it into one first");
		Type *T = A->getAllocatedType();
		uint64_t Bytes = Size->getZExtValue();
		AllocaInst *Copy = inside(T, A->getAlign(), A->getName() + ".copy");

		if (T->isSingleValueType() && !T->isVectorTy() && Bytes <= 8) {
			Value *V = Before.CreateLoad(T, A, A->getName() + ".now");
			useInside(A, Copy, Inside.CreateStore(V, Copy));
			continue;
		}
		auto *P = PointerType::get(C, 0);
		Value *Shipped = Before.CreateCall(runtime(M, Block, P, {Type::getInt64Ty(C)}), {Size});
		Before.CreateMemCpy(Shipped, Align(16), A, A->getAlign(), Size);
		useInside(A, Copy, Inside.CreateMemCpy(Copy, A->getAlign(), Shipped, Align(16), Size));
		Inside.CreateCall(runtime(M, Unblock, Type::getVoidTy(C), {P}), {Shipped});
	}
	return true;
}

/* Is there a path from a store on the block's other side to this load? */
bool Outliner::crosses(LoadInst *L)
{
	bool Inside = Region.count(L->getParent());
	std::vector<Instruction *> Work{L};
	std::set<BasicBlock *> Seen;

	while (!Work.empty()) {
		Instruction *I = Work.back();

		Work.pop_back();
		BasicBlock *B = I->getParent();
		for (I = I->getPrevNode(); I; I = I->getPrevNode())
			if (auto *S = dyn_cast<StoreInst>(I); S && S->getPointerOperand() == L->getPointerOperand())
				break;
		if (I && Region.count(B) != Inside)
			return true;
		if (I)
			continue;
		for (BasicBlock *Before : predecessors(B))
			if (Seen.insert(Before).second)
				Work.push_back(Before->getTerminator());
	}
	return false;
}

/*
 * Clang has one variable in a function (cleanup.dest.slot) for all scopes with cleanups: it says where to continue
 * after them. Only numbers are stored, and only a switch reads them.
 */
bool Outliner::isWayOut(AllocaInst *A)
{
	auto IsSwitch = [](User *U) { return isa<SwitchInst>(U); };

	for (User *U : A->users()) {
		auto *Store = dyn_cast<StoreInst>(U);
		auto *Load = dyn_cast<LoadInst>(U);

		if (Store && Store->getPointerOperand() == A && isa<ConstantInt>(Store->getValueOperand()))
			continue;
		if (!Load || !all_of(Load->users(), IsSwitch) || crosses(Load))
			return false;
	}
	return A->getAllocatedType()->isIntegerTy(32);
}

/* The block needs such a variable of its own: the function may have returned while the activity runs. */
void Outliner::ownWaysOut()
{
	auto InBlock = [&](User *U) { return Region.count(cast<Instruction>(U)->getParent()); };
	std::vector<AllocaInst *> Shared;

	for (Instruction &I : F.getEntryBlock())
		if (auto *A = dyn_cast<AllocaInst>(&I); A && any_of(A->users(), InBlock) && isWayOut(A))
			Shared.push_back(A);
	for (AllocaInst *A : Shared)
		useInside(A, inside(A->getAllocatedType(), A->getAlign(), A->getName() + ".own"), nullptr);
}

/* Moves variables that only the block uses. At -O0 there are no lifetime markers that would tell CodeExtractor. */
void Outliner::moveOwn()
{
	std::vector<AllocaInst *> Variables;

	for (Instruction &I : F.getEntryBlock())
		if (auto *A = dyn_cast<AllocaInst>(&I))
			Variables.push_back(A);
	for (AllocaInst *A : Variables) {
		bool Any = false, All = true;

		for (User *U : A->users()) {
			auto *I = cast<Instruction>(U);
			if (Region.count(I->getParent()))
				Any = true;
			else if (!I->isLifetimeStartOrEnd())
				All = false;
		}
		if (!Any || !All)
			continue;
		for (User *U : make_early_inc_range(A->users()))
			if (auto *I = cast<Instruction>(U); I->isLifetimeStartOrEnd())
				I->eraseFromParent();
		A->moveBefore(*First, First->getFirstInsertionPt());
	}
}

/* A block that never ends (for (;;), abort) must not stop the activating function. */
void Outliner::goOnAfter(CallInst *Call, Function *B)
{
	Instruction *End = Call->getParent()->getTerminator();

	B->removeFnAttr(Attribute::NoReturn);
	Call->removeFnAttr(Attribute::NoReturn);
	if (!isa<UnreachableInst>(End))
		return;
	for (PHINode &P : Exit->phis())
		P.addIncoming(PoisonValue::get(P.getType()), Call->getParent());
	BranchInst::Create(Exit, End->getIterator());
	End->eraseFromParent();
}

/* The macro's loop runs once: without its back-edge no yield is inserted there. */
void Outliner::notAgain()
{
	auto *Back = dyn_cast<BranchInst>(End->getParent()->getTerminator());

	if (!Back || Back->isConditional() || !Back->getSuccessor(0)->phis().empty() || !Exit->phis().empty())
		return;
	Back->setSuccessor(0, Exit);
	Back->setMetadata(LLVMContext::MD_loop, nullptr);
}

bool Outliner::run(Body &Result)
{
	SplitBlock(Begin->getParent(), Begin->getNextNode());
	if (!findLoop() || !collect() || !hasNoArguments())
		return false;
	noDeadWaysIn();
	enterByOneBlock();
	ownDeadEnds();
	if (!copyListed())
		return false;
	ownWaysOut();
	moveOwn();

	CodeExtractorAnalysisCache Cache(F);
	CodeExtractor Extractor(Region.getArrayRef(), nullptr, false, nullptr, nullptr, nullptr, false, true, nullptr,
				"activity");
	Function *B = Extractor.isEligible() ? Extractor.extractCodeRegion(Cache) : nullptr;

	if (!B && any_of(Region, [](BasicBlock *R) { return R->isLandingPad(); }))
		return fail("the block of activate has destructors, or catches exceptions: move it into a function, "
			    "and call that");
	if (!B)
		return fail(
		    "the block of activate cannot be a function of its own: it contains an alloca, or a label whose "
		    "address is taken");
	for (Instruction &I : make_early_inc_range(instructions(*B)))
		if (auto *A = dyn_cast<AllocaInst>(&I); A && isa<ConstantInt>(A->getArraySize()))
			A->moveBefore(B->getEntryBlock(), B->getEntryBlock().getFirstInsertionPt());
	Result = {B, cast<CallInst>(*B->user_begin()), Begin->getArgOperand(0)};
	goOnAfter(Result.Spawn, B);
	Begin->replaceAllUsesWith(ConstantInt::get(Begin->getType(), 1));
	Begin->eraseFromParent();
	notAgain();
	End->replaceAllUsesWith(ConstantInt::get(End->getType(), 0));
	End->eraseFromParent();
	return true;
}

/* The last block in layout contains no other block. */
CallInst *lastActivate(Function &F)
{
	CallInst *Last = nullptr;

	for (Instruction &I : instructions(F))
		if (calls(I, Activate))
			Last = cast<CallInst>(&I);
	return Last;
}
} // namespace

bool outlineActivities(Module &M, function_ref<void(Body &)> Made)
{
	std::vector<Function *> Work;

	if (!M.getFunction(Activate))
		return true;
	for (Function &F : M)
		if (!F.isDeclaration())
			Work.push_back(&F);
	for (Function *F : Work)
		while (CallInst *Begin = lastActivate(*F)) {
			Body B;

			if (!Outliner(*F, Begin).run(B))
				return false;
			B.F->setName(F->getName() + ".activity");
			Made(B);
		}
	return true;
}
} // namespace weft
