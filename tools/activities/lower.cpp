/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The last step for a twin in the optimizer.
 *
 * Markers become checks. At the entry of a twin that calls twins:
 *
 *   if (rsp < hot.limit)                     the timer has rung, or a segment of the stack is nearly full
 *           if (weft__activity_entered())    switches if the timer has rung; true: the segment is nearly full
 *                   return weft__activity_fresh(the same arguments)     calls the twin again, in the next segment
 *
 * At an explicit yield, on a back-edge that still exists, and at the entry if calls of the function itself have become
 * a loop:
 *
 *   if (hot.flag)
 *           weft__activity_tick()
 *
 * Variables whose address other code may hold move into a heap block, which weft__activity_push allocates at the entry
 * and weft__activity_pop frees at each exit: a parked activity's frames are a copy, and a pointer must not lead into
 * the frames of another activity. Other code may hold the address if it was stored, if it was passed to code that may
 * keep it, or if it was passed to a twin, which may continue in another stack while another activity uses this frame's
 * place. A variable stays in the frame if no switch is possible during its lifetime: a program may measure its depth by
 * such addresses.
 */
#include "pass.h"

#include "llvm/Analysis/StackLifetime.h"
#include "llvm/IR/CycleInfo.h"
#include "llvm/IR/DIBuilder.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Local.h"
#include "llvm/Transforms/Utils/PromoteMemToReg.h"

#include <map>
#include <set>

using namespace llvm;

namespace weft
{
namespace
{
constexpr uint32_t Dots = 64 << 10; /* most bytes of variable arguments */

class Lowering
{
      public:
	explicit Lowering(Function &F)
	    : F(F), M(*F.getParent()), C(F.getContext()), P(PointerType::get(C, 0)), DL(M.getDataLayout())
	{
	}
	void run();

      private:
	Function &F;
	Module &M;
	LLVMContext &C;
	PointerType *P;
	const DataLayout &DL;
	/* the call that allocates the frame's variables; NULL: all variables are in the frame */
	Instruction *Pushed = nullptr;
	bool HasSized = false; /* is any variable of variable size? */

	DebugLoc line() const;
	MDNode *seldom();
	Value *field(IRBuilder<> &IR, unsigned Offset);
	CallInst *slowly(IRBuilder<> &IR, StringRef Name, Type *Result);
	void loopCheck(CallInst *Mark);
	void markers();
	bool callsTwins();
	bool hasEntryCheck();
	uint32_t argumentBytes();
	void entryCheck();
	bool othersKnow(Value *Address);
	bool known(Use &U, std::vector<Value *> &Work);
	bool knownByCall(CallBase &Call, Use &U);
	std::vector<Instruction *> switches();
	void variables();
	void keepBasePointer();
	Value *newest(IRBuilder<> &IR);
	void landed(IRBuilder<> &IR, Value *Newest);
	void landings();
	void catches();
	void pin();
	void moveFixed(std::vector<AllocaInst *> &Variables);
	void moveSized(std::vector<AllocaInst *> &Variables);
	void moveTo(AllocaInst *A, Value *To);
	void replaceUses(AllocaInst *A, Value *Start, uint64_t Offset);
	void atExits(function_ref<void(IRBuilder<> &)> Do);
};

DebugLoc Lowering::line() const
{
	DISubprogram *S = F.getSubprogram();

	return S ? DebugLoc(DILocation::get(C, S->getLine(), 0, S)) : DebugLoc();
}

MDNode *Lowering::seldom()
{
	return MDBuilder(C).createBranchWeights(1, 10000);
}

Value *Lowering::field(IRBuilder<> &IR, unsigned Offset)
{
	return IR.CreateConstGEP1_64(IR.getInt8Ty(), IR.CreateThreadLocalAddress(hot(M)), Offset);
}

/* A function that keeps most registers. The dynamic linker's resolver at the first call would keep fewer. */
static FunctionCallee keeping(Module &M, StringRef Name, Type *Result)
{
	FunctionCallee Callee = runtime(M, Name, Result, {});

	cast<Function>(Callee.getCallee())->setCallingConv(CallingConv::PreserveMost);
	cast<Function>(Callee.getCallee())->addFnAttr(Attribute::NonLazyBind);
	return Callee;
}

CallInst *Lowering::slowly(IRBuilder<> &IR, StringRef Name, Type *Result)
{
	CallInst *Call = IR.CreateCall(keeping(M, Name, Result));

	Call->setCallingConv(CallingConv::PreserveMost);
	Call->addFnAttr(Attribute::Cold);
	return Call;
}

/* Another thread sets the flag. The comparison is assembly, because the compiler would load the flag first. */
void Lowering::loopCheck(CallInst *Mark)
{
	IRBuilder<> IR(Mark);
	auto *Compare = InlineAsm::get(FunctionType::get(IR.getInt32Ty(), {P}, false), "cmpl $$0, $1",
				       "={@ccne},*m,~{dirflag},~{fpsr},~{flags}", true);
	CallInst *Set = IR.CreateCall(Compare, {field(IR, HotFlag)});

	Set->addParamAttr(0, Attribute::get(C, Attribute::ElementType, IR.getInt32Ty()));
	Set->setDebugLoc(Mark->getDebugLoc() ? Mark->getDebugLoc() : line());
	Set->setMemoryEffects(MemoryEffects::readOnly());
	Set->setDoesNotThrow();
	Instruction *Then =
	    SplitBlockAndInsertIfThen(IR.CreateICmpNE(Set, IR.getInt32(0)), Mark->getIterator(), false, seldom());
	IR.SetInsertPoint(Then);
	IR.SetCurrentDebugLocation(Set->getDebugLoc());
	slowly(IR, Tick, IR.getVoidTy());
}

static bool hasLoopMark(BasicBlock &B)
{
	return any_of(B, [](Instruction &I) { return calls(I, LoopMark) || calls(I, CallMark); });
}

/*
 * Is there a path from the entry's mark back to it without a mark of a loop? The optimizer makes a loop of a function
 * that calls itself at its end; the loop begins at the entry.
 */
static bool isLoopOfCalls(CallInst *Mark)
{
	BasicBlock *Home = Mark->getParent();
	std::vector<BasicBlock *> Work{Home};
	std::set<BasicBlock *> Seen;

	if (hasLoopMark(*Home))
		return false;
	while (!Work.empty()) {
		BasicBlock *B = Work.back();

		Work.pop_back();
		for (BasicBlock *S : successors(B)) {
			if (S == Home)
				return true;
			if (!hasLoopMark(*S) && Seen.insert(S).second)
				Work.push_back(S);
		}
	}
	return false;
}

void Lowering::markers()
{
	CycleInfo Cycles; /* loops, and cycles that goto has made, with several entries */
	std::vector<CallInst *> Marks;
	std::vector<bool> Stays;

	Cycles.compute(F);
	for (Instruction &I : instructions(F))
		if (calls(I, LoopMark) || calls(I, EntryMark) || calls(I, CallMark) || calls(I, YieldMark)) {
			Marks.push_back(cast<CallInst>(&I));
			Stays.push_back(
			    calls(I, YieldMark) || calls(I, CallMark) || (yieldsAround(F) && calls(I, LoopMark)) ||
			    (Cycles.getCycle(I.getParent()) && (calls(I, LoopMark) || isLoopOfCalls(Marks.back()))));
		}
	for (size_t I = 0; I < Marks.size(); I++) {
		if (Stays[I])
			loopCheck(Marks[I]);
		Marks[I]->eraseFromParent();
	}
}

/*
 * A check in a loop's middle makes the optimizer rotate the loop, which duplicates the condition. If both results meet
 * in a phi behind the loop, each iteration sets a register to the result. Instead, the compared values meet there and
 * are compared once, as in code without checks. A hash table's look-up takes 0.99 of plain C's time, in place of 1.07.
 */
static bool compareBehind(PHINode &Bits)
{
	auto *First = dyn_cast<ICmpInst>(Bits.getIncomingValue(0));

	if (!Bits.getType()->isIntegerTy(1) || !First || !isa<Constant>(First->getOperand(1)))
		return false;
	auto IsAlike = [First](Value *V) {
		auto *Other = dyn_cast<ICmpInst>(V);

		return Other && Other->getPredicate() == First->getPredicate() &&
		       Other->getOperand(1) == First->getOperand(1);
	};
	if (!all_of(Bits.incoming_values(), IsAlike))
		return false;
	IRBuilder<> IR(&Bits);
	unsigned Ways = Bits.getNumIncomingValues();
	PHINode *Compared = IR.CreatePHI(First->getOperand(0)->getType(), Ways);
	for (unsigned I = 0; I < Ways; I++)
		Compared->addIncoming(cast<ICmpInst>(Bits.getIncomingValue(I))->getOperand(0),
				      Bits.getIncomingBlock(I));
	IR.SetInsertPoint(Bits.getParent(), Bits.getParent()->getFirstInsertionPt());
	Bits.replaceAllUsesWith(IR.CreateICmp(First->getPredicate(), Compared, First->getOperand(1)));
	return true;
}

static void compareBehind(Function &F)
{
	for (BasicBlock &B : F)
		for (PHINode &Bits : make_early_inc_range(B.phis()))
			if (compareBehind(Bits))
				Bits.eraseFromParent();
}

bool Lowering::callsTwins()
{
	for (Instruction &I : instructions(F))
		if (auto *Call = dyn_cast<CallBase>(&I))
			if (Call->hasFnAttr(YieldsAttribute) && Call->getCallingConv() != CallingConv::PreserveNone &&
			    Call->getCallingConv() != CallingConv::PreserveMost)
				return true;
	return false;
}

/* The most bytes of arguments on the stack. To copy more than there are is harmless. */
uint32_t Lowering::argumentBytes()
{
	uint64_t Words = 0, Bytes = 0;
	bool Any = F.isVarArg();

	for (Argument &A : F.args()) {
		bool ByValue = A.hasByValAttr();
		Type *T = ByValue ? A.getParamByValType() : A.getType();
		uint64_t Aligned = std::max<uint64_t>(8, ByValue ? A.getParamAlign().valueOrOne().value()
								 : DL.getABITypeAlign(T).value());

		Words += divideCeil(DL.getTypeAllocSize(T), 8);
		Bytes += alignTo(DL.getTypeAllocSize(T), Aligned) + Aligned;
		Any |= ByValue || T->isX86_FP80Ty() || T->isFP128Ty();
	}
	/* Six words are in registers. The number of arguments behind the dots is unknown. */
	return (Any || Words > 6 ? Bytes : 0) + (F.isVarArg() ? Dots : 0);
}

/* LLVM 19 copies arguments by value over the function's saved registers if it jumps with them, so such a call is not
 * a jump. */
static bool copiesArguments(Function &F)
{
	return any_of(F.args(), [](Argument &A) { return A.hasByValAttr(); });
}

/* Does F ask for the address that it returns to, or for another function's frame? */
static bool seesCaller(Function &F)
{
	return any_of(instructions(F), [](Instruction &I) {
		auto *Call = dyn_cast<IntrinsicInst>(&I);
		auto Id = Call ? Call->getIntrinsicID() : Intrinsic::not_intrinsic;

		return Id == Intrinsic::returnaddress ||
		       (Id == Intrinsic::frameaddress && !match(Call->getArgOperand(0), PatternMatch::m_Zero()));
	});
}

static bool callsIntrinsic(Function &F, Intrinsic::ID Id)
{
	return any_of(instructions(F), [Id](Instruction &I) {
		auto *Call = dyn_cast<IntrinsicInst>(&I);

		return Call && Call->getIntrinsicID() == Id;
	});
}

/* With AVX, LLVM saves vectors for va_start beyond the frame if the function also jumps with its variable arguments. */
static bool savesVectorsAstray(Function &F)
{
	return F.getFnAttribute("target-features").getValueAsString().contains("+avx") &&
	       callsIntrinsic(F, Intrinsic::vastart);
}

/* Only a jump passes the arguments behind the dots on. By Windows' convention a function writes to its caller's
 * frame, and keeps more vectors. The functions that they call check the stack themselves. */
bool Lowering::hasEntryCheck()
{
	return callsTwins() && !(F.isVarArg() && (copiesArguments(F) || savesVectorsAstray(F))) &&
	       F.getCallingConv() != CallingConv::Win64;
}

void Lowering::entryCheck()
{
	if (!hasEntryCheck())
		return;
	BasicBlock &Entry = F.getEntryBlock();
	Instruction *At = &*Entry.getFirstNonPHIOrDbgOrAlloca();
	IRBuilder<> IR(At);
	IR.SetCurrentDebugLocation(line());
	auto *Name = MDNode::get(C, {MDString::get(C, "rsp")});
	Type *I64 = IR.getInt64Ty();
	Value *Sp = IR.CreateIntrinsic(Intrinsic::read_register, {I64}, {MetadataAsValue::get(C, Name)});
	auto *Limit = IR.CreateAlignedLoad(I64, field(IR, HotLimit), Align(8));
	Limit->setAtomic(AtomicOrdering::Monotonic);
	Instruction *Then = SplitBlockAndInsertIfThen(IR.CreateICmpULT(Sp, Limit), At->getIterator(), false, seldom());
	IR.SetInsertPoint(Then);
	IR.SetCurrentDebugLocation(line());
	CallInst *Full = slowly(IR, argumentBytes() || seesCaller(F) ? EnteredWhole : Entered, IR.getInt32Ty());
	Then = SplitBlockAndInsertIfThen(IR.CreateICmpNE(Full, IR.getInt32(0)), Then->getIterator(), true, seldom());
	IR.SetInsertPoint(Then);
	IR.SetCurrentDebugLocation(line());
	IR.CreateStore(&F, field(IR, HotTarget));
	IR.CreateStore(IR.getInt32(argumentBytes()), field(IR, HotArguments));
	std::vector<Value *> Arguments;
	for (Argument &A : F.args())
		Arguments.push_back(&A);
	FunctionCallee Again = M.getOrInsertFunction(Fresh, FunctionType::get(IR.getVoidTy(), false));
	CallInst *Call = IR.CreateCall(F.getFunctionType(), Again.getCallee(), Arguments);
	Call->setCallingConv(F.getCallingConv());
	Call->setTailCallKind(copiesArguments(F) ? CallInst::TCK_NoTail : CallInst::TCK_MustTail);
	AttributeList As = F.getAttributes();
	std::vector<AttributeSet> Parameters;
	for (size_t I = 0; I < F.arg_size(); I++)
		Parameters.push_back(As.getParamAttrs(I));
	Call->setAttributes(AttributeList::get(C, AttributeSet(), As.getRetAttrs(), Parameters));
	if (F.getReturnType()->isVoidTy())
		IR.CreateRetVoid();
	else
		IR.CreateRet(Call);
	Then->eraseFromParent();
}

bool Lowering::knownByCall(CallBase &Call, Use &U)
{
	if (isa<MemIntrinsic>(Call))
		return false;
	if (auto *I = dyn_cast<IntrinsicInst>(&Call))
		return !I->isLifetimeStartOrEnd() && !I->isAssumeLikeIntrinsic() &&
		       I->getIntrinsicID() != Intrinsic::vastart && I->getIntrinsicID() != Intrinsic::vaend &&
		       I->getIntrinsicID() != Intrinsic::vacopy;
	if (!Call.isArgOperand(&U))
		return true;
	unsigned N = Call.getArgOperandNo(&U);
	if (Call.isByValArgument(N))
		return false;
	return Call.hasFnAttr(YieldsAttribute) || !Call.doesNotCapture(N);
}

/* Without optimization a value passes through a variable of the frame that is only loaded and stored. */
static AllocaInst *simpleVariable(StoreInst *Store)
{
	auto *To = Store ? dyn_cast<AllocaInst>(Store->getPointerOperand()) : nullptr;

	return To && isAllocaPromotable(To) ? To : nullptr;
}

/* Does this use give the address to other code? Values made from it are added to the work. The address may become an
 * integer that is compared, or returned when the variable ends: programs measure their depth in this way. */
bool Lowering::known(Use &U, std::vector<Value *> &Work)
{
	auto *I = cast<Instruction>(U.getUser());

	if (isa<LoadInst>(I) || isa<ICmpInst>(I) || isa<ReturnInst>(I))
		return false;
	if (AllocaInst *To = simpleVariable(dyn_cast<StoreInst>(I)); To && U.getOperandNo() == 0) {
		for (User *Other : To->users())
			if (isa<LoadInst>(Other))
				Work.push_back(Other);
		return false;
	}
	if (isa<StoreInst>(I) || isa<AtomicRMWInst>(I) || isa<AtomicCmpXchgInst>(I))
		return U.getOperandNo() != (isa<StoreInst>(I) ? 1u : 0u);
	if (isa<GetElementPtrInst>(I) || isa<BitCastInst>(I) || isa<PHINode>(I) || isa<SelectInst>(I) ||
	    ((isa<CastInst>(I) || isa<BinaryOperator>(I)) && I->getType()->isIntegerTy())) {
		Work.push_back(I);
		return false;
	}
	if (auto *Call = dyn_cast<CallBase>(I))
		return knownByCall(*Call, U);
	return true;
}

bool Lowering::othersKnow(Value *Address)
{
#ifdef WEFT_CANARY_variables_stay
	return false;
#endif
	std::vector<Value *> Work{Address};
	std::set<Value *> Seen;

	while (!Work.empty()) {
		Value *V = Work.back();

		Work.pop_back();
		if (!Seen.insert(V).second)
			continue;
		for (Use &U : V->uses())
			if (known(U, Work))
				return true;
	}
	return false;
}

/* The calls in which F may be parked, except the call at its entry, where no address is known yet. */
std::vector<Instruction *> Lowering::switches()
{
	std::vector<Instruction *> Calls;

	for (Instruction &I : instructions(F))
		if (auto *Call = dyn_cast<CallBase>(&I); Call && (Call->hasFnAttr(YieldsAttribute) || calls(I, Tick)))
			Calls.push_back(Call);
	return Calls;
}

void Lowering::atExits(function_ref<void(IRBuilder<> &)> Do)
{
	for (BasicBlock &B : F) {
		Instruction *End = B.getTerminator();

		if (!isa<ReturnInst>(End) && !isa<ResumeInst>(End))
			continue;
		if (CallInst *Last = B.getTerminatingMustTailCall())
			End = Last;
		IRBuilder<> IR(End);
		IR.SetCurrentDebugLocation(End->getDebugLoc() ? End->getDebugLoc() : line());
		Do(IR);
	}
}

static void forgetLifetime(AllocaInst *A)
{
	for (User *U : make_early_inc_range(A->users()))
		if (auto *I = dyn_cast<Instruction>(U); I && I->isLifetimeStartOrEnd())
			I->eraseFromParent();
}

/* Replaces A by To. The debugger finds it through a slot of the frame. */
void Lowering::moveTo(AllocaInst *A, Value *To)
{
	DIBuilder Info(M, false);

	if (A->isUsedByMetadata()) {
		auto *Slot = new AllocaInst(P, 0, A->getName() + ".at", F.getEntryBlock().getFirstInsertionPt());
		IRBuilder<> IR(cast<Instruction>(To)->getNextNode());

		IR.SetCurrentDebugLocation(line());
		IR.CreateStore(To, Slot);
		replaceDbgDeclare(A, Slot, Info, DIExpression::DerefBefore, 0);
	}
	To->takeName(A);
	A->replaceAllUsesWith(To);
	A->eraseFromParent();
}

/* Each use computes the address, because otherwise a function with many variables would keep as many addresses in
 * its frame. A variable that a debugger knows keeps its address, because the debugger would not find it otherwise. */
void Lowering::replaceUses(AllocaInst *A, Value *Start, uint64_t Offset)
{
	std::map<BasicBlock *, Value *> OfPhis; /* by the block that the value comes from */

	while (!A->use_empty()) {
		Use &U = *A->use_begin();
		auto *Phi = dyn_cast<PHINode>(U.getUser());
		Value **Known = Phi ? &OfPhis[Phi->getIncomingBlock(U)] : nullptr;

		if (!Known || !*Known) {
			IRBuilder<> IR(Phi ? Phi->getIncomingBlock(U)->getTerminator()
					   : cast<Instruction>(U.getUser()));
			Value *Address = IR.CreateConstGEP1_64(IR.getInt8Ty(), Start, Offset, A->getName());

			if (!Known) {
				U.set(Address);
				continue;
			}
			*Known = Address;
		}
		U.set(*Known);
	}
	A->eraseFromParent();
}

/* Moves all variables of fixed size into one block. */
void Lowering::moveFixed(std::vector<AllocaInst *> &Variables)
{
	Type *I64 = Type::getInt64Ty(C);
	uint64_t Bytes = 0;
	Align Most(16);
	std::vector<uint64_t> Offsets;

	for (AllocaInst *A : Variables) {
		Most = std::max(Most, A->getAlign());
		Bytes = alignTo(Bytes, A->getAlign());
		Offsets.push_back(Bytes);
		Bytes += *A->getAllocationSize(DL);
	}
	uint64_t Extra = Most > Align(16) ? Most.value() : 0;
	IRBuilder<> IR(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	IR.SetCurrentDebugLocation(line());
	CallInst *Given = IR.CreateCall(runtime(M, Push, P, {I64}), {IR.getInt64(Bytes + Extra)});
	Value *Start = Given;
	Pushed = Given;
	if (Extra)
		Start = IR.CreateIntrinsic(Intrinsic::ptrmask, {P, I64},
					   {IR.CreateConstGEP1_64(IR.getInt8Ty(), Given, Extra - 1),
					    IR.getInt64(-Most.value())});
	for (size_t I = 0; I < Variables.size(); I++) {
		AllocaInst *A = Variables[I];

		if (A->isUsedByMetadata())
			moveTo(A, IR.CreateConstGEP1_64(IR.getInt8Ty(), Start, Offsets[I]));
		else
			replaceUses(A, Start, Offsets[I]);
	}
	atExits([&](IRBuilder<> &B) { B.CreateCall(runtime(M, Pop, Type::getVoidTy(C), {P}), {Given}); });
}

/* Moves arrays of variable length and alloca, each into a block of its own, until their scope or the function ends. */
void Lowering::moveSized(std::vector<AllocaInst *> &Variables)
{
	Type *I64 = Type::getInt64Ty(C);
	FunctionCallee Down = runtime(M, "weft__activity_pop_to", Type::getVoidTy(C), {P});
	std::vector<IntrinsicInst *> Restores;

	for (Instruction &I : instructions(F))
		if (auto *R = dyn_cast<IntrinsicInst>(&I); R && R->getIntrinsicID() == Intrinsic::stackrestore)
			Restores.push_back(R);
	for (IntrinsicInst *R : Restores) {
		auto *Save = dyn_cast<IntrinsicInst>(R->getArgOperand(0));

		if (!Save || Save->getIntrinsicID() != Intrinsic::stacksave)
			continue;
		IRBuilder<> AtSave(Save), AtRestore(R);
		AtSave.SetCurrentDebugLocation(line());
		AtRestore.SetCurrentDebugLocation(line());
		AtRestore.CreateCall(Down, {newest(AtSave)});
	}
	IRBuilder<> Entry(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	Entry.SetCurrentDebugLocation(line());
	Value *Before = newest(Entry);
	for (AllocaInst *A : Variables) {
		IRBuilder<> IR(A);
		IR.SetCurrentDebugLocation(line());
		uint64_t Over = A->getAlign().value() > 16 ? A->getAlign().value() : 0;
		Value *Bytes = IR.CreateMul(IR.CreateZExtOrTrunc(A->getArraySize(), I64),
					    IR.getInt64(DL.getTypeAllocSize(A->getAllocatedType())));
		Value *To = IR.CreateCall(runtime(M, Push, P, {I64}), {IR.CreateAdd(Bytes, IR.getInt64(Over))});
		if (Over)
			To = IR.CreateIntrinsic(Intrinsic::ptrmask, {P, I64},
						{IR.CreateConstGEP1_64(IR.getInt8Ty(), To, Over - 1),
						 IR.getInt64(-Over)});
		moveTo(A, To);
	}
	atExits([&](IRBuilder<> &B) { B.CreateCall(Down, {Before}); });
}

/* An argument by value is in the caller's frame: if other code knows its address, a variable takes its place. */
static void copyByValue(Function &F, Argument &A)
{
	Type *T = A.getParamByValType();
	IRBuilder<> IR(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	auto *Copy = new AllocaInst(T, 0, A.getName() + ".own", F.getEntryBlock().getFirstInsertionPt());
	Align At = A.getParamAlign().valueOrOne();

	Copy->setAlignment(std::max(At, Align(8)));
	A.replaceAllUsesWith(Copy);
	IR.CreateMemCpy(Copy, Copy->getAlign(), &A, At, F.getParent()->getDataLayout().getTypeAllocSize(T));
}

void Lowering::variables()
{
	std::vector<AllocaInst *> Fixed, Sized;
	std::vector<const AllocaInst *> Known;
	std::vector<Instruction *> Switches = switches();

	if (Switches.empty())
		return;
	for (Argument &A : F.args())
		if (A.hasByValAttr() && othersKnow(&A))
			copyByValue(F, A);
	for (Instruction &I : instructions(F))
		if (auto *A = dyn_cast<AllocaInst>(&I); A && othersKnow(A))
			Known.push_back(A);
	StackLifetime Lifetimes(F, Known, StackLifetime::LivenessType::May);
	Lifetimes.run();
	for (const AllocaInst *A : Known)
		if (any_of(Switches,
			   [&](Instruction *S) { return Lifetimes.isReachable(S) && Lifetimes.isAliveAfter(A, S); }))
			(A->isStaticAlloca() ? Fixed : Sized).push_back(const_cast<AllocaInst *>(A));
	for (auto *List : {&Fixed, &Sized})
		for (AllocaInst *A : *List)
			forgetLifetime(A);
	HasSized = !Sized.empty();
	if (HasSized)
		moveSized(Sized);
	if (!Fixed.empty())
		moveFixed(Fixed);
}

/* May the frame have a base pointer? It has, if its size varies and a variable in it is aligned by more than 16. */
static bool mayHaveBasePointer(Function &F)
{
	for (Instruction &I : instructions(F)) {
		auto *A = dyn_cast<AllocaInst>(&I);
		auto *Call = dyn_cast<CallBase>(&I);
		auto *Text = Call ? dyn_cast<InlineAsm>(Call->getCalledOperand()) : nullptr;

		if ((A && !A->isStaticAlloca()) ||
		    (Text && Text->getConstraintString().find("sp}") != std::string::npos))
			return true;
	}
	return false;
}

/* LLVM 19 does not save the base pointer around a call that keeps no register, so these calls keep all registers. */
void Lowering::keepBasePointer()
{
	if (!mayHaveBasePointer(F))
		return;
	for (Instruction &I : instructions(F))
		for (auto [From, To] : {std::pair(ParkNow, ParkKept), std::pair(YieldNow, YieldKept)})
			if (calls(I, From)) {
				cast<CallBase>(I).setCalledFunction(keeping(M, To, Type::getVoidTy(C)));
				cast<CallBase>(I).setCallingConv(CallingConv::PreserveMost);
				break;
			}
}

/* The newest variable of the activity at this time; all newer variables are freed later. */
Value *Lowering::newest(IRBuilder<> &IR)
{
	return IR.CreateCall(runtime(M, "weft__activity_newest", P, {}));
}

void Lowering::landed(IRBuilder<> &IR, Value *Newest)
{
	IR.CreateCall(runtime(M, "weft__activity_landed", Type::getVoidTy(C), {P}), {Newest});
}

/* Adds code behind each setjmp: functions that longjmp left have not freed their variables and stacks. */
void Lowering::landings()
{
	std::vector<CallInst *> Calls;

	for (Instruction &I : instructions(F))
		if (auto *Call = dyn_cast<CallInst>(&I); Call && Call->canReturnTwice())
			Calls.push_back(Call);
	for (CallInst *Call : Calls) {
		IRBuilder<> Before(Call), After(Call->getNextNode());
		auto *Slot = new AllocaInst(P, 0, "newest", F.getEntryBlock().getFirstInsertionPt());

		Before.SetCurrentDebugLocation(line());
		After.SetCurrentDebugLocation(line());
		Before.CreateStore(newest(Before), Slot, true);
		landed(After, After.CreateLoad(P, Slot, true));
	}
}

/*
 * Does the same where an exception is caught. A function that only runs destructors leaves this to the catching
 * function. If F has variables of variable size, the newest variable at the beginning is not the right one to return
 * to.
 */
void Lowering::catches()
{
	std::vector<LandingPadInst *> Pads;

	for (Instruction &I : instructions(F))
		if (auto *Pad = dyn_cast<LandingPadInst>(&I); Pad && Pad->getNumClauses() > 0)
			Pads.push_back(Pad);
	if (Pads.empty() || HasSized)
		return;
	IRBuilder<> IR(Pushed ? Pushed->getNextNode() : &*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	IR.SetCurrentDebugLocation(line());
	Value *Newest = newest(IR);
	for (LandingPadInst *Pad : Pads) {
		IR.SetInsertPoint(Pad->getParent(), Pad->getParent()->getFirstInsertionPt());
		IR.SetCurrentDebugLocation(line());
		landed(IR, Newest);
	}
}

/* Must the frames outside F's frame be in place while functions that F calls run? See src/activity/segments.c. */
static bool needsPin(Function &F)
{
	return callsIntrinsic(F, Intrinsic::vastart) || any_of(instructions(F), [](Instruction &I) {
		       auto *Call = dyn_cast<CallBase>(&I);
		       auto *Pad = dyn_cast<LandingPadInst>(&I);

		       return (Pad && Pad->getNumClauses() > 0) || (Call && Call->hasFnAttr(Attribute::ReturnsTwice));
	       });
}

void Lowering::pin()
{
	if (!callsTwins() || !needsPin(F))
		return;
	IRBuilder<> IR(&*F.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
	IR.SetCurrentDebugLocation(line());
	Value *First = IR.CreateCall(runtime(M, Pin, IR.getInt32Ty(), {}));
	atExits([&](IRBuilder<> &B) { B.CreateCall(runtime(M, Unpin, B.getVoidTy(), {B.getInt32Ty()}), {First}); });
}

/* An activity begins by a convention under which LLVM refuses frames with a base pointer, so a function is put
 * between. */
static bool enterByConvention(Function &F)
{
	if (F.isDeclaration() || F.getCallingConv() != CallingConv::PreserveNone || !mayHaveBasePointer(F))
		return false;
	LLVMContext &C = F.getContext();
	auto *Begin =
	    Function::Create(F.getFunctionType(), GlobalValue::InternalLinkage, F.getName() + ".begin", F.getParent());
	IRBuilder<> IR(BasicBlock::Create(C, "", Begin));
	std::vector<Value *> Arguments;

	for (Argument &A : Begin->args())
		Arguments.push_back(&A);
	Begin->setCallingConv(CallingConv::PreserveNone);
	Begin->setAttributes(AttributeList::get(C, F.getAttributes().getFnAttrs(), {}, {}));
	Begin->removeFnAttr(TwinAttribute);
	F.replaceAllUsesWith(Begin);
	F.setCallingConv(CallingConv::C);
	CallInst *Call = IR.CreateCall(&F, Arguments);
	if (F.getReturnType()->isVoidTy())
		IR.CreateRetVoid();
	else
		IR.CreateRet(Call);
	return true;
}

/* Moves the variables to the front, so that code can be put behind all of them. */
static void variablesFirst(BasicBlock &Entry)
{
	std::vector<AllocaInst *> Variables;
	auto First = Entry.getFirstNonPHIOrDbgOrAlloca();

	for (Instruction &I : make_range(First, Entry.end()))
		if (auto *A = dyn_cast<AllocaInst>(&I); A && isa<ConstantInt>(A->getArraySize()))
			Variables.push_back(A);
	for (AllocaInst *A : Variables)
		A->moveBefore(Entry, First);
}

void Lowering::run()
{
	variablesFirst(F.getEntryBlock());
	settleMarks(F, hasEntryCheck());
	compareBehind(F);
	markers();
	variables();
	landings();
	catches();
	pin();
	keepBasePointer();
	entryCheck();
}
} // namespace

PreservedAnalyses Lower::run(Module &M, ModuleAnalysisManager &)
{
	bool Changed = false;

	for (Function &F : M)
		if (!F.isDeclaration() && F.hasFnAttribute(TwinAttribute)) {
			Lowering(F).run();
			Changed = true;
		}
	for (Function &F : M)
		Changed |= enterByConvention(F);
	for (StringRef Name : {LoopMark, EntryMark, CallMark, YieldMark})
		if (Function *F = M.getFunction(Name); F && F->use_empty())
			F->eraseFromParent();
	return Changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}
} // namespace weft
